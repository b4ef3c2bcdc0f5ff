package perm

import (
	"errors"
	"fmt"
	"strings"
)

// ResourceAccess is an action on a resource or on every resource that a pattern
// matches. It is plain data: a need, an access of a grant, or a requested
// access. It carries no authority and is checked only where it is used. A Set
// is its compiled form.
type ResourceAccess struct {
	Action   Action `json:"action"`
	Resource string `json:"resource"`         // text of a resource or pattern
	Method   string `json:"method,omitempty"` // HTTP method of a connect; "" is every method
	// Argv is the whole command line of a requested execute. A policy sees it.
	// A grant holds only the program, with any arguments.
	Argv Argv `json:"argv,omitzero"`
}

// Access returns the access of an action on a resource or pattern.
func Access(action Action, resource string) ResourceAccess {
	return ResourceAccess{Action: action, Resource: resource}
}

// ParseAccess parses the text that String writes. The text holds the action,
// the HTTP method of a connect if it has one, and the resource or pattern.
// Single spaces separate them.
func ParseAccess(text string) (ResourceAccess, error) {
	a, _, err := readAccess(text)
	return a, err
}

func readAccess(text string) (ResourceAccess, rule, error) {
	words := strings.Split(text, " ")
	if len(words) < 2 || len(words) > 3 || words[1] == "" {
		return ResourceAccess{}, rule{}, errors.New(`not a valid access: valid are "read file://workspace/**" and "connect POST https://host/path"`)
	}
	a := Access(Action(words[0]), words[len(words)-1])
	if len(words) == 3 {
		a.Method = words[1]
	}
	r, err := a.compile()
	if err != nil {
		return ResourceAccess{}, rule{}, err
	}
	return a, r, nil
}

// String returns a as one line, such as "read file://workspace/**" or "connect
// POST https://api.example.com/v1/**".
func (a ResourceAccess) String() string {
	if a.Method == "" {
		return string(a.Action) + " " + a.Resource
	}
	return string(a.Action) + " " + a.Method + " " + a.Resource
}

// Pattern parses the resource of a.
func (a ResourceAccess) Pattern() (Pattern, error) { return ParsePattern(a.Resource) }

// rule is an access that was checked and parsed.
type rule struct {
	action  Action
	method  string
	pattern Pattern
}

func (a ResourceAccess) compile() (rule, error) {
	p, err := ParsePattern(a.Resource)
	if err != nil {
		return rule{}, err
	}
	return newRule(a.Action, a.Method, p)
}

func newRule(action Action, method string, p Pattern) (rule, error) {
	switch {
	case !action.Valid():
		return rule{}, fmt.Errorf("unknown action; valid are %v", actions())
	case method != "" && action != Connect:
		return rule{}, fmt.Errorf("only %s has a method", Connect)
	case len(method) > 32 || !only(method, func(c byte) bool { return 'A' <= c && c <= 'Z' }):
		return rule{}, errors.New("bad method: valid are upper-case letters, such as POST")
	}
	return rule{action: action, method: method, pattern: p}, nil
}

func (r rule) access() ResourceAccess {
	return ResourceAccess{Action: r.action, Resource: r.pattern.String(), Method: r.method}
}

func (r rule) same(o rule) bool {
	return r.action == o.action && r.method == o.method && r.pattern.text == o.pattern.text
}

// covers reports whether r holds for every access that o matches.
func (r rule) covers(o rule) bool {
	return r.action == o.action && (r.method == "" || r.method == o.method) && r.pattern.Covers(o.pattern)
}

// overlaps reports whether r and o both hold for some access.
func (r rule) overlaps(o rule) bool {
	return r.action == o.action && (r.method == "" || o.method == "" || r.method == o.method) && r.pattern.Overlaps(o.pattern)
}
