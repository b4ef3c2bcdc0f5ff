package config

import (
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/jsonfile"
	"github.com/remit-dev/remit/provenance"
)

// rolesOf parses what the arguments of a tool do.
func rolesOf(n *jsonfile.Node) provenance.Roles {
	if n == nil || !n.IsObject() {
		return nil
	}
	roles := provenance.Roles{}
	for _, m := range n.Members() {
		role := provenance.Role(m.Text())
		if m.Value.Kind() == canon.String && !slices.Contains([]provenance.Role{provenance.Authority, provenance.Payload, provenance.Selector}, role) {
			m.Refuse("unknown role; valid are authority, content, selector")
		}
		if !isPointer(m.Name) {
			m.RefuseName(`want a pointer to an argument, such as /to or /to/*: each step of it begins with "/"`)
		}
		roles[m.Name] = role
	}
	return roles
}

// fieldsOf parses which parts of the structured content are trusted.
func fieldsOf(n *jsonfile.Node) (fields []string) {
	if n == nil {
		return nil
	}
	fields = n.Texts()
	for _, e := range n.Elements() {
		if e.Value.Kind() == canon.String && (e.Value.Text() == "" || !isPointer(e.Value.Text())) {
			e.Refuse(`want a pointer to a field, such as /id or /items/*/id: each step of it begins with "/"`)
		}
	}
	return fields
}

func isPointer(text string) bool { return text == "" || strings.HasPrefix(text, "/") }
