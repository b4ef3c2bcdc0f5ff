package perm

// Actions shows tests every action.
func Actions() []Action { return actions() }
