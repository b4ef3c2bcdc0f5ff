package effect

// Class says how an effect can be reverted. The zero Class counts as Pivot.
type Class string

// The effect classes.
const (
	Pure        Class = "pure"        // no effect
	Reversible  Class = "reversible"  // an exact pre-image is taken first
	Compensable Class = "compensable" // a semantic inverse exists; traces remain
	Deferrable  Class = "deferrable"  // can wait until its transaction commits
	Pivot       Class = "pivot"       // cannot be reverted
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

// OrPivot returns c, or Pivot if c is not valid.
func (c Class) OrPivot() Class {
	if c.Valid() {
		return c
	}
	return Pivot
}
