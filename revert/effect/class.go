package effect

// Class says what can be done about an effect once it happened. The zero
// class counts as Pivot.
type Class string

// The effect classes.
const (
	Pure        Class = "pure"        // no effect
	Reversible  Class = "reversible"  // an exact pre-image is taken first
	Compensable Class = "compensable" // a semantic inverse exists; traces remain
	Deferrable  Class = "deferrable"  // can wait until its transaction commits
	Pivot       Class = "pivot"       // no way back
)

// Classes lists the classes, mildest first.
func Classes() []Class {
	return []Class{Pure, Reversible, Compensable, Deferrable, Pivot}
}

// Valid reports whether c is one of the classes; the empty class is not.
func (c Class) Valid() bool {
	switch c {
	case Pure, Reversible, Compensable, Deferrable, Pivot:
		return true
	default:
		return false
	}
}

// OrPivot returns c, or Pivot where nothing valid was declared.
func (c Class) OrPivot() Class {
	if c.Valid() {
		return c
	}
	return Pivot
}
