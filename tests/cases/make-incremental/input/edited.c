/* Large enough that its object file takes several blocks. */
static const char *const words[] = {
#define W(n) "word number " #n " of a table that is long enough to matter"
#define W8(n) W(n##0), W(n##1), W(n##2), W(n##3), W(n##4), W(n##5), W(n##6), \
	W(n##7)
#define W64(n) W8(n##0), W8(n##1), W8(n##2), W8(n##3), W8(n##4), W8(n##5), \
	W8(n##6), W8(n##7)
	W64(0), W64(1), W64(2), W64(3), W64(4), W64(5), W64(6), W64(7),
};

int edited(int n);

int edited(int n)
{
	if (words[n][0] == 'w')
		return 0;
	return n;
}
