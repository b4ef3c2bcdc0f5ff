package perm

// Actions shows tests every action.
func Actions() []Action { return actions() }

// ParseAccess shows tests how a line of a set is read.
func ParseAccess(text string) (ResourceAccess, error) {
	a, _, err := readAccess(text)
	return a, err
}
