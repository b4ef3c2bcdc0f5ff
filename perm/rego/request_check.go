package rego

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// requestCheck validates everything in a request, also what a policy does not
// read. It runs for each decision, before a cached one is used: a request with
// one repaired text may have others, and a rule that sees a repaired text could
// allow another resource than the call touches.
type requestCheck struct{ err error }

// check validates a request. Three parts are checked only if the policy reads
// them. The list of changes can be long, and each access of it arrives in its
// own request, which is checked. The counts of the session's tools have nothing
// of the call, and are computed only when they are read. The data of the
// session has nothing of the call either, and was checked when the session
// began.
func check(p *plan, r *perm.Request) error {
	var c requestCheck
	c.context(r)
	c.effects(r.Txn.Effects)
	c.tool(&r.Tool)
	c.call(&r.Call)
	c.json(scriptOf(r), argumentsNotJSON)
	c.json(r.Output, argumentsNotJSON)
	c.access(&r.Access)
	if p.readsChanges {
		c.changes(r.Changes)
	}
	if p.readsData {
		c.json(r.Session.Data, "the data of the session is not JSON")
	}
	if c.err == nil && p.readsCounts {
		return checkCounts(r.Session.Tools)
	}
	return c.err
}

// context checks the principal, the session, the transaction, the purpose and
// the time. RFC 3339 cannot represent every year.
func (c *requestCheck) context(r *perm.Request) {
	c.texts(r.Principal.ID, r.Principal.Kind, r.Session.ID, r.Txn.ID, string(r.Purpose))
	c.texts(r.Principal.Roles...)
	c.texts(r.Principal.Chain...)
	c.texts(r.Session.Labels...)
	c.texts(r.Session.Requires...)
	var last perm.RecentCall
	for _, recent := range r.Session.Recent {
		if recent != last { // many are equal
			c.text(recent.Tool)
			c.text(recent.Status)
		}
		last = recent
	}
	for i := range r.Session.History {
		past := &r.Session.History[i]
		c.texts(past.Tool, past.Outcome, past.Effect)
		c.texts(past.Resources...)
		c.json(past.Args, argumentsNotJSON)
	}
	if client := r.Session.Client; client != nil {
		c.texts(client.Surface, client.Model)
		c.texts(client.Capabilities...)
		c.texts(client.Selected...)
		c.texts(client.Disabled...)
	}
	if year := r.Time.Year(); year < 0 || year > 9999 {
		c.fail("the time is outside the years 0 to 9999")
	}
}

func (c *requestCheck) tool(t *perm.ToolFacts) {
	c.texts(t.Name, t.Version, t.Digest, t.Provenance, t.Confinement, t.Coverage, t.Destination, t.Grade, string(t.Risk))
	c.texts(t.Tags...)
}

func (c *requestCheck) call(f *perm.CallFacts) {
	c.texts(f.ID, f.EffectClass)
	c.json(f.Args, argumentsNotJSON)
	if f.Prompt != nil {
		c.texts(f.Prompt.Client, f.Prompt.ID, f.Prompt.Text)
	}
	for i := range f.URLs {
		c.text(f.URLs[i].URL)
	}
	for i := range f.Values {
		v := &f.Values[i]
		c.texts(v.Pointer, v.Role)
		c.texts(v.Origins...)
		for j := range v.Identifiers {
			id := &v.Identifiers[j]
			c.texts(id.Text, id.Kind)
			c.texts(id.Origins...)
		}
	}
}

func (c *requestCheck) access(a *perm.AccessFacts) {
	c.texts(string(a.Action), a.Method)
	c.resource(&a.Resource)
	c.git(a.Git)
}

func (c *requestCheck) resource(r *perm.ResourceFacts) {
	c.texts(
		r.Kind, r.Text, r.Root, r.Path, r.Name, r.Ext, r.Scheme, r.Host, r.Database, r.Table, r.Statement, r.Program, r.Server, r.Tool,
	)
	c.texts(r.Segments...)
	c.texts(r.Argv...)
}

func (c *requestCheck) git(g *perm.GitFacts) {
	if g != nil {
		c.text(g.Kind)
		c.texts(g.Keys...)
	}
}

func (c *requestCheck) changes(list []perm.ChangeFacts) {
	for i := range list {
		change := &list[i]
		c.resource(&change.Resource)
		c.texts(change.Kind, change.Before, change.After, change.MediaType)
		c.git(change.Git)
		if change.Text != nil {
			c.text(*change.Text)
		}
	}
}

func checkCounts(tools perm.CountsByTool) error {
	var c requestCheck
	for name, t := range tools.All() {
		c.text(name)
		c.sums(t.Sums)
		for window, w := range t.Windows {
			c.text(window)
			c.sums(w.Sums)
		}
	}
	return c.err
}

func (c *requestCheck) sums(sums map[string]json.Number) {
	for name, n := range sums {
		c.text(name)
		if n == "" {
			continue
		}
		if first := n[0]; !json.Valid([]byte(n)) || (first != '-' && (first < '0' || first > '9')) {
			c.fail("a sum is not a number")
		}
	}
}

func (c *requestCheck) texts(list ...string) {
	for _, s := range list {
		c.text(s)
	}
}

func (c *requestCheck) text(s string) {
	//mutant:check
	if s != "" && !utf8.ValidString(s) { // many are empty
		c.fail("a text is not UTF-8")
	}
}

const argumentsNotJSON = "the arguments or the output are not JSON"

func (c *requestCheck) json(text json.RawMessage, why string) {
	if len(text) > 0 && !canon.IsCanonical(text) && !readable(text) {
		c.fail(why)
	}
}

// readable reports whether a text becomes a value as it is. OPA refuses numbers
// with huge exponents, which are JSON. A text in canonical form has none.
func readable(text json.RawMessage) bool {
	if !utf8.Valid(text) || !json.Valid(text) {
		return false
	}
	_, err := ast.ValueFromReader(bytes.NewReader(text))
	return err == nil
}

// fail keeps the first failure. The text never repeats a value.
func (c *requestCheck) fail(why string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", ErrInput, why)
	}
}
