package canon

// EncodePlain is the quick way to a canonical form, false where there is none, and Reread the way that defines it.
var EncodePlain = encodePlain

func Reread(v any) ([]byte, error) {
	value, err := reread(v)
	return value.Canonical(), err
}
