package canon

// plainPrefix returns the length of a prefix of s that consists of ASCII
// characters other than controls, quotes and backslashes. It looks at eight
// bytes at a time, and the prefix can be up to seven bytes longer.
func plainPrefix[T string | []byte](s T) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	at := 0
	for ; at+8 <= len(s); at += 8 {
		x := uint64(s[at]) | uint64(s[at+1])<<8 | uint64(s[at+2])<<16 | uint64(s[at+3])<<24 |
			uint64(s[at+4])<<32 | uint64(s[at+5])<<40 | uint64(s[at+6])<<48 | uint64(s[at+7])<<56
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		// Each term has the high bit of a byte if that byte is of the kind, or
		// follows one.
		if ((x-ones*' ')|(quote-ones)|(slash-ones)|x)&highs != 0 {
			break
		}
	}
	return at
}
