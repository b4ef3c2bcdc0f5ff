package perm

// Actions exports every action to tests.
func Actions() []Action { return actions() }
