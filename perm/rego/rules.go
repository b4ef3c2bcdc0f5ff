package rego

// Rule is a rule of a policy that adds to one of its sets.
type Rule struct {
	Set string `json:"set"` // deny, ask, hold, allow, limit, ...
	At  string `json:"at"`  // file:line
}

// Rules returns the rules of the policy, in the order of its files.
func (e *Engine) Rules() []Rule {
	if e == nil {
		return nil
	}
	rules := make([]Rule, 0, len(e.plain.places))
	for _, p := range e.plain.places {
		rules = append(rules, Rule{Set: p.set, At: p.at})
	}
	return rules
}

// ReadsInput reports whether the policy reads a field of the input, such as
// session.tools or call.args, with any purpose. It is true for a field below one
// that the policy reads as a whole.
func (e *Engine) ReadsInput(field string) bool { return e != nil && e.plain.reads(field) }
