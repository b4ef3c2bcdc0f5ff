package canon

// EncodePlain is the fast path to a canonical form; it returns false if it does
// not apply. Reread is the path that defines the form.
var EncodePlain = encodePlain

// Flat is the fast path of From for maps of scalars.
var Flat = flat

func Reread(v any) ([]byte, error) {
	value, err := reread(v)
	return value.Canonical(), err
}

// PlainPrefix is what texts are scanned with.
func PlainPrefix[T string | []byte](s T) int { return plainPrefix(s) }
