int edited(int n);

int main(void)
{
	return edited(3);
}
