//go:build amd64 || arm64

package shim

// cut is strings.Cut, whose package would import the Unicode tables.
func cut(s string, at byte) (before, after string, found bool) {
	for i := range len(s) {
		if s[i] == at {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// joined joins texts.
func joined(all []string, between string) (whole string) {
	for i, s := range all {
		if i > 0 {
			whole += between
		}
		whole += s
	}
	return whole
}
