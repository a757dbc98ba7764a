# blkbox. make, make BPF=0, make check, make demo, make install.
# SPDX-License-Identifier: GPL-2.0-or-later
VERSION := 0.1.0
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
BPF ?= 1
SAN ?=
V ?= 0

CC = gcc
CLANG ?= clang-14
LLVM_STRIP ?= llvm-strip-14
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DBLKBOX_VERSION='"$(VERSION)"' \
	$(WARN) $(CFLAGS)
LIBS := -lcjson -lzstd -lxxhash -lpthread
ifneq ($(SAN),)
ALL_CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
LDFLAGS += -fsanitize=$(SAN)
endif
ifeq ($(BPF),0)
ALL_CFLAGS += -DBLKBOX_NO_BPF
USER_SRC := user/main.c
else
USER_SRC := $(wildcard user/*.c)
LIBS += -lbpf -lelf -lz
endif

REPLAY_SRC := $(wildcard replay/*.c)
ORACLE_SRC := $(wildcard oracle/*.c)
UNIT_SRC := $(wildcard tests/unit/test_*.c)
BENCH_SRC := $(wildcard tests/bench/*.c)
TOOL_SRC := $(wildcard tests/tools/*.c)

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
REPLAY_OBJ := $(call obj,$(REPLAY_SRC))
ORACLE_OBJ := $(call obj,$(ORACLE_SRC))
USER_OBJ := $(call obj,$(USER_SRC))
UNIT_BIN := $(patsubst %.c,$(BUILD)/%,$(UNIT_SRC))
BENCH_BIN := $(patsubst %.c,$(BUILD)/%,$(BENCH_SRC))
TOOL_BIN := $(patsubst %.c,$(BUILD)/%,$(TOOL_SRC))

ifeq ($(V),0)
say = @printf '  %-8s %s\n' $(1) $(patsubst $(BUILD)/%,%,$@);
else
say =
endif

.PHONY: all deps check-deps check check-long demo bench benches install clean \
	tests fuzz
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/blkbox

# Everything is rebuilt when the flags change, and linked anew when a source
# file comes or goes: both are written to files.
FLAGS := $(CC) $(CLANG) $(ALL_CFLAGS) $(LDFLAGS) $(LIBS)
OBJECTS := $(REPLAY_OBJ) $(ORACLE_OBJ) $(USER_OBJ)
keep = @mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || \
	printf '%s\n' '$(subst ','\'',$(1))' > $@
$(BUILD)/flags: force
	$(call keep,$(FLAGS))
$(BUILD)/objects: force
	$(call keep,$(OBJECTS))
.PHONY: force

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CFLAGS) -I$(BUILD) -MMD -MP -c $< -o $@

$(BUILD)/libreplay.a: $(REPLAY_OBJ) $(BUILD)/objects
	$(call say,AR)rm -f $@; ar rcs $@ $(REPLAY_OBJ)
$(BUILD)/liboracle.a: $(ORACLE_OBJ) $(BUILD)/objects
	$(call say,AR)rm -f $@; ar rcs $@ $(ORACLE_OBJ)

$(BUILD)/blkbox: $(USER_OBJ) $(BUILD)/liboracle.a $(BUILD)/libreplay.a
	$(call say,LINK)$(CC) $(LDFLAGS) $^ $(LIBS) -o $@

ifneq ($(BPF),0)
# BPF programs: compiled one by one, linked into one object, one skeleton.
# The definitions first: libbpf 1.1 does not give maps that were seen as extern
# before their place in the section.
BPF_SRC := bpf/common.bpf.c \
	$(filter-out bpf/common.bpf.c,$(wildcard bpf/*.bpf.c))
BPF_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(BPF_SRC))
SKEL := $(BUILD)/blkbox.skel.h

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,BPF)$(CLANG) -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -O2 -g \
		-Wall -Wextra -Werror -Ivmlinux -MMD -MP -c $< -o $@
	@$(LLVM_STRIP) -g $@
$(BUILD)/blkbox.bpf.o: $(BPF_OBJ)
	$(call say,GEN-OBJ)$(BPFTOOL) gen object $@ $^
$(SKEL): $(BUILD)/blkbox.bpf.o
	$(call say,GEN-SKEL)$(BPFTOOL) gen skeleton $< name blkbox_bpf > $@
$(USER_OBJ): $(SKEL)
-include $(BPF_OBJ:.o=.d)
endif

# ---- tests -------------------------------------------------------------------

# What unit tests share: every tests/unit/*.c that is no test itself.
UNIT_HELP_OBJ := $(call obj,$(filter-out $(UNIT_SRC),\
	$(wildcard tests/unit/*.c)))
$(BUILD)/libunit.a: $(UNIT_HELP_OBJ)
	$(call say,AR)rm -f $@; ar rcs $@ $^
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/libunit.a \
		$(BUILD)/liboracle.a $(BUILD)/libreplay.a
	$(call say,LINK)$(CC) $(LDFLAGS) $^ $(LIBS) -lcmocka -o $@
# The live half is not linked with; what needs no libbpf can be tested alike.
$(BUILD)/tests/unit/test_assemble: $(BUILD)/user/assemble.o \
		$(BUILD)/user/payload.o
$(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/liboracle.a \
		$(BUILD)/libreplay.a
	$(call say,LINK)$(CC) $(LDFLAGS) $^ $(LIBS) -o $@
$(BUILD)/tests/tools/%: $(BUILD)/tests/tools/%.o $(BUILD)/liboracle.a \
		$(BUILD)/libreplay.a
	$(call say,LINK)$(CC) $(LDFLAGS) $^ $(LIBS) -o $@

tests: $(UNIT_BIN) $(TOOL_BIN)
benches: $(BENCH_BIN)

# libFuzzer targets, with sanitizers; the rooms they test are compiled in.
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(patsubst %.c,$(BUILD)/%,$(FUZZ_SRC))
FUZZ_SECONDS ?= 60
$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(REPLAY_SRC) $(wildcard replay/*.h)
	@mkdir -p $(@D)
	$(call say,FUZZ)$(CLANG) -std=gnu11 -D_GNU_SOURCE -g -O1 \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		$< $(filter-out replay/cmd_%,$(REPLAY_SRC)) \
		-lcjson -lzstd -lxxhash -lpthread -o $@
fuzz: $(FUZZ_BIN)

deps:
	@packaging/install-deps build run $(if $(filter 0,$(BPF)),,bpf)
check-deps: deps
	@packaging/install-deps check

demo: deps
	@$(MAKE) --no-print-directory all
	@tests/demo $(BUILD)/blkbox $(BUILD)/demo

SAN_BUILD := $(BUILD)/san
SAN_UNIT = $(patsubst %.c,$(SAN_BUILD)/%,$(UNIT_SRC))
CLI_TESTS := $(sort $(wildcard tests/cli/*.bats))
# Compiled without BPF, libbpf and clang, whatever is installed.
OFFLINE = $(BUILD)/offline

check: check-deps
	@$(MAKE) --no-print-directory -j$$(nproc) all tests fuzz benches
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(SAN_BUILD) BPF=0 \
		SAN=address,undefined tests
	@$(MAKE) --no-print-directory -j$$(nproc) BUILD=$(OFFLINE) BPF=0 all
	@PATH=$(abspath $(BUILD)):$$PATH BLKBOX_BUILD=$(abspath $(BUILD)) \
		tests/run $(SAN_UNIT) \
		'includes=tests/includes' \
		'shellcheck=tests/shellcheck' \
		'vmlinux=vmlinux/check' \
		$(foreach f,$(FUZZ_BIN),'$(notdir $(f))=tests/fuzz/smoke $(f) \
			$(FUZZ_SECONDS)') \
		$(CLI_TESTS)

# The same with more seeds, more states and longer fuzzing.
check-long: check-deps
	@$(MAKE) --no-print-directory FUZZ_SECONDS=600 BLKBOX_LONG=1 check

bench: check-deps
	@$(MAKE) --no-print-directory all benches
	@tests/bench/explore $(BUILD)
	@tests/bench/record $(BUILD)

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/man/man5
	install -m 755 $(BUILD)/blkbox $(DESTDIR)$(PREFIX)/bin/blkbox
	$(if $(wildcard packaging/man/*.1),install -m 644 \
		$(wildcard packaging/man/*.1) $(DESTDIR)$(PREFIX)/share/man/man1)

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
