// Package pastcall decides which earlier calls of a session match a query of
// package history.
package pastcall

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/remit-dev/remit/history"
	"github.com/remit-dev/remit/perm"
)

var (
	// ErrUnknown is the answer if nothing is known about the earlier calls: a
	// call that nobody knows of must not count as one that did not happen.
	ErrUnknown = errors.New("the earlier calls of the session are unknown")
	// ErrErased is the answer if an erased call decides: its resources and its
	// arguments are not known any more.
	ErrErased = errors.New("an earlier call can match, whose record was erased")
)

// Pattern matches calls as a query says. The zero Pattern matches each call
// whose code ran.
type Pattern struct {
	tool, effect, outcome string
	resource              perm.Pattern
	byResource            bool
}

// Outcome of a call whose code did not run. No other such call is a past one.
const denied = "denied"

// Parse returns the pattern of a query, without its window and its sum. An
// error has no text of the resource, which can be of an argument.
func Parse(q history.Query) (p Pattern, err error) {
	p = Pattern{tool: q.Tool, effect: q.Effect, outcome: q.Outcome}
	outcomes := []string{"done", denied, "failed", "verify_failed", "cancelled", "timeout", "unknown"}
	if q.Outcome != "" && !slices.Contains(outcomes, q.Outcome) {
		return p, fmt.Errorf("outcome of the pattern: must be one of %s", strings.Join(outcomes, ", "))
	}
	classes := []string{"pure", "reversible", "compensable", "deferrable", "pivot"}
	if q.Effect != "" && !slices.Contains(classes, q.Effect) {
		return p, fmt.Errorf("effect of the pattern: must be one of %s", strings.Join(classes, ", "))
	}
	if q.Resource == "" {
		return p, nil
	}
	p.byResource = true
	if p.resource, err = perm.ParsePattern(q.Resource); err != nil {
		return p, errors.New("resource of the pattern: must be a pattern of resources, such as file://workspace/docs/** or https://example.com/**")
	}
	if len(p.resource.Params()) > 0 {
		return p, errors.New("resource of the pattern: must not have parameters")
	}
	return p, nil
}

// Exact returns the only tool, and the place of the only resource, that the
// pattern matches. Empty: it can match several.
func (p Pattern) Exact() (tool, place string) {
	if !strings.Contains(p.tool, "*") {
		tool = p.tool
	}
	if one, exact := p.resource.Exact().Get(); exact {
		place = Place(one)
	}
	return tool, place
}

// Place returns a key of a resource. A pattern without wildcards matches only
// resources of its own place, and perhaps not each.
func Place(r perm.Resource) string {
	return strings.Join(append([]string{string(r.Kind()), r.Authority()}, r.Segments()...), "\x00")
}

// Matches reports whether a call matches. If known is false, the answer depends
// on what was erased of the call.
func (p Pattern) Matches(c *history.Call) (matches, known bool) {
	if p.outcome == "" && c.Outcome == denied || p.outcome != "" && p.outcome != c.Outcome || p.tool != "" && !glob(p.tool, c.Tool) {
		return false, true
	}
	if p.effect != "" && c.Effect != "" && p.effect != c.Effect {
		return false, true
	}
	effectKnown := p.effect == "" || c.Effect != ""
	if !p.byResource {
		return effectKnown, effectKnown
	}
	known = c.Resources != nil
	for _, text := range c.Resources {
		r, err := perm.ParseResource(text)
		known = known && err == nil
		if err == nil && p.resource.Matches(r) {
			return effectKnown, effectKnown
		}
	}
	return false, known
}

// glob matches a text with a pattern, in which * is any characters.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	rest, begins := strings.CutPrefix(text, parts[0])
	if last := len(parts) - 1; !begins || last == 0 {
		return begins && rest == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// Window is a part of a session. The zero Window is the whole session.
type Window struct {
	Span time.Duration // before the end of the window; 0: no such bound
	Last int           // number of calls, of any tool and outcome; 0: no such bound
}

// maxLastCalls bounds the number of calls in a window.
const maxLastCalls = 10_000

// ParseWindow parses the window of a query.
func ParseWindow(text string) (w Window, err error) {
	if text == "" {
		return w, nil
	}
	if w.Last, err = strconv.Atoi(text); err == nil {
		if w.Last < 1 || w.Last > maxLastCalls {
			return Window{}, fmt.Errorf("the number of calls of a window must be from 1 to %d", maxLastCalls)
		}
		return w, nil
	}
	if w.Span, err = time.ParseDuration(text); err != nil || w.Span <= 0 {
		return Window{}, errors.New("a window must be a duration such as 10m or 24h, or a number of calls")
	}
	return w, nil
}
