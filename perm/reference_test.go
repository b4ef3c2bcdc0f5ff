package perm_test

import (
	"strings"

	"github.com/remit-dev/remit/perm"
)

// The reference is a second matcher. It follows the documentation of Pattern
// and Set, not their code. It works on texts, tries everything, and is slow.
// Its input texts are canonical.

// refMatches reports whether a pattern matches a resource, both as texts.
func refMatches(pattern, resource string) bool {
	p, r := refSplit(pattern), refSplit(resource)
	if p.scheme != r.scheme || p.query != "" && p.query != r.query {
		return false
	}
	if p.port != ":*" && p.port != r.port {
		return false
	}
	if strings.HasPrefix(p.scheme, "http") {
		return refHost(p.authority, r.authority) && refPath(p.path, r.path)
	}
	if p.authority == "" || r.authority == "" {
		return p.authority == r.authority && refPath(p.path, r.path)
	}
	return refSegment(refTokens(p.authority), refTokens(r.authority)) && refPath(p.path, r.path)
}

type refParts struct {
	scheme, authority, port, query string
	path                           []string
}

func refSplit(text string) (p refParts) {
	p.scheme, text, _ = strings.Cut(text, "://")
	text, p.query, _ = strings.Cut(text, "?")
	names := strings.Split(text, "/")
	p.authority, p.path = names[0], names[1:]
	if host, port, found := strings.Cut(p.authority, ":"); found && strings.HasPrefix(p.scheme, "http") {
		p.authority, p.port = host, ":"+port
	}
	return p
}

func refHost(pattern, host string) bool {
	if pattern == "*" || pattern == host {
		return true
	}
	labels := strings.Split(host, ".")
	for i := 1; i < len(labels); i++ {
		if pattern == "*."+strings.Join(labels[i:], ".") {
			return true
		}
	}
	return false
}

func refPath(pattern, path []string) bool {
	if len(pattern) == 0 {
		return len(path) == 0
	}
	if pattern[0] == "**" {
		for skip := 0; skip <= len(path); skip++ {
			if refPath(pattern[1:], path[skip:]) {
				return true
			}
		}
		return false
	}
	return len(path) > 0 && refSegment(refTokens(pattern[0]), refTokens(path[0])) && refPath(pattern[1:], path[1:])
}

// refTokens returns the characters of a text, with %2A as one.
func refTokens(text string) []string {
	var tokens []string
	for text != "" {
		n := 1
		if text[0] == '%' {
			n = 3
		}
		tokens, text = append(tokens, text[:n]), text[n:]
	}
	return tokens
}

func refSegment(pattern, name []string) bool {
	switch {
	case len(pattern) == 0:
		return len(name) == 0
	case pattern[0] == "*":
		return refSegment(pattern[1:], name) || len(name) > 0 && refSegment(pattern, name[1:])
	default:
		return len(name) > 0 && pattern[0] == name[0] && refSegment(pattern[1:], name[1:])
	}
}

// refSet is a set as the sequence of its operations.
type refSet struct {
	op          string // "", except, union, intersect
	accesses    []perm.ResourceAccess
	left, right *refSet
}

// allows reports whether s holds an exact access with a method and a statement,
// if the access can have them.
func (s refSet) allows(a perm.ResourceAccess) bool {
	switch s.op {
	case "except":
		return s.left.allows(a) && !refAny(s.accesses, a)
	case "union":
		return s.left.allows(a) || s.right.allows(a)
	case "intersect":
		return s.left.allows(a) && s.right.allows(a)
	default:
		return refAny(s.accesses, a)
	}
}

func refAny(accesses []perm.ResourceAccess, a perm.ResourceAccess) bool {
	for _, h := range accesses {
		if h.Action == a.Action && (h.Method == "" || h.Method == a.Method) && refMatches(h.Resource, a.Resource) {
			return true
		}
	}
	return false
}
