package perm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// errNoHistory is the answer of the zero History: a call that nobody knows of
// must not count as one that did not happen.
var errNoHistory = errors.New("the earlier calls of the session are unknown")

// PastCall is an earlier call of a session that has ended.
type PastCall struct {
	Tool    string `json:"tool"`
	Outcome string `json:"outcome"` // done, denied, failed, verify_failed, cancelled, timeout, unknown
	// Effect is the effect class of the call. Empty: unknown, as its record was
	// erased.
	Effect string `json:"effect,omitempty"`
	// Resources are those of the accesses that the policy decided before the
	// call. Nil: unknown, as the record of the call was erased.
	Resources []string  `json:"resources,omitzero"`
	At        time.Time `json:"at,omitzero"` // end of the call
}

// History answers what happened in a session before a call. It is immutable and
// safe for concurrent use. The zero History knows nothing: each of its answers
// is an error.
type History struct {
	source HistorySource
	list   []PastCall // of NewHistory and of JSON; nil: the source answers
}

// HistorySource is where the answers of a History come from. It must give the
// same answers for as long as it is used, from several goroutines.
type HistorySource interface {
	// Count returns how many calls in a window match. The argument now is the
	// time at which the window ends.
	Count(p CallPattern, w CallWindow, now time.Time) (int, error)
	// Before reports whether calls match both patterns, and the last one that
	// matches a ended before the last one that matches b.
	Before(a, b CallPattern) (bool, error)
}

// NewHistory returns the history of calls, in the order of their ends.
func NewHistory(calls []PastCall) History {
	list := append([]PastCall{}, calls...)
	return History{source: pastList(list), list: list}
}

// HistoryFrom returns the history of a source.
func HistoryFrom(s HistorySource) History { return History{source: s} }

// List returns the calls of NewHistory. It returns nil for another history.
func (h History) List() []PastCall { return slices.Clone(h.list) }

// Source returns what answers. The zero History has a source that only returns
// errors.
func (h History) Source() HistorySource {
	if h.source == nil {
		return noHistory{}
	}
	return h.source
}

// IsZero reports whether the JSON form of a session leaves the history out: a
// session can have too many calls for a list.
func (h History) IsZero() bool { return h.list == nil }

// MarshalJSON writes the list of NewHistory.
func (h History) MarshalJSON() ([]byte, error) { return json.Marshal(h.list) }

// UnmarshalJSON reads a list of calls, in the order of their ends.
func (h *History) UnmarshalJSON(text []byte) error {
	var list []PastCall
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if *h = (History{}); list != nil {
		*h = NewHistory(list)
	}
	return nil
}

type noHistory struct{}

func (noHistory) Count(CallPattern, CallWindow, time.Time) (int, error) { return 0, errNoHistory }
func (noHistory) Before(CallPattern, CallPattern) (bool, error)         { return false, errNoHistory }

// pastList answers from a short list.
type pastList []PastCall

func (l pastList) Count(p CallPattern, w CallWindow, now time.Time) (n int, err error) {
	for i := range l {
		if w.last > 0 && len(l)-i > w.last || w.span > 0 && !l[i].At.After(now.Add(-w.span)) {
			continue
		}
		matches, known := p.Matches(&l[i])
		if !known {
			return 0, errErasedCall
		}
		if matches {
			n++
		}
	}
	return n, nil
}

// errErasedCall is the answer if an erased call decides: its effect and its
// resources are not known any more.
var errErasedCall = errors.New("an earlier call can match, whose record was erased")

func (l pastList) Before(a, b CallPattern) (bool, error) {
	last := [2]int{-1, -1}
	for i := range l {
		for n, p := range []CallPattern{a, b} {
			matches, known := p.Matches(&l[i])
			if !known {
				return false, errErasedCall
			}
			if matches {
				last[n] = i
			}
		}
	}
	return last[0] >= 0 && last[0] < last[1], nil
}

// CallPattern matches earlier calls. The zero CallPattern matches each call
// whose code ran.
type CallPattern struct {
	tool, effect, outcome, resource string
	pattern                         Pattern // of resource
}

// outcomes are the outcomes of earlier calls. A call that was denied is the
// only one whose code did not run.
var outcomes = []string{"done", "denied", "failed", "verify_failed", "cancelled", "timeout", "unknown"}

// NewCallPattern returns the pattern with these members, by name: tool, with *
// for any characters; effect, an effect class; resource, the text of a Pattern;
// and outcome. Each can be missing. Without outcome, the pattern matches every
// call whose code ran: not one that was denied.
func NewCallPattern(members map[string]string) (CallPattern, error) {
	var p CallPattern
	for name, value := range members {
		if value == "" {
			return p, fmt.Errorf("%s of the pattern is empty; leave it out", name)
		}
		switch name {
		case "tool":
			p.tool = strings.ReplaceAll(value, "*", star)
		case "effect":
			p.effect = value
		case "resource":
			p.resource = value
		case "outcome":
			p.outcome = value
		default:
			return p, fmt.Errorf("the pattern has no member %s; valid are tool, effect, resource, outcome", name)
		}
	}
	if classes := []string{"pure", "reversible", "compensable", "deferrable", "pivot"}; p.effect != "" && !slices.Contains(classes, p.effect) {
		return p, fmt.Errorf("effect of the pattern: must be one of %s", strings.Join(classes, ", "))
	}
	if p.outcome != "" && !slices.Contains(outcomes, p.outcome) {
		return p, fmt.Errorf("outcome of the pattern: must be one of %s", strings.Join(outcomes, ", "))
	}
	if p.resource == "" {
		return p, nil
	}
	var err error
	if p.pattern, err = ParsePattern(p.resource); err != nil {
		return p, errors.New("resource of the pattern: must be a pattern of resources, such as file://workspace/docs/** or https://example.com/**") // without the text, which can be of an argument
	}
	if len(p.pattern.Params()) > 0 {
		return p, errors.New("resource of the pattern: must not have parameters")
	}
	return p, nil
}

// Key identifies the pattern: equal keys match the same calls.
func (p CallPattern) Key() string {
	return strings.Join([]string{p.tool, p.effect, p.outcome, p.resource}, "\x00")
}

// File returns the one file that the resource of the pattern names, or "" if it
// names none or more than one.
func (p CallPattern) File() string {
	if one, exact := p.pattern.Exact().Get(); exact && one.Kind() == KindFile {
		return one.String()
	}
	return ""
}

// Matches reports whether a call matches. If known is false, the answer depends
// on what was erased of the call.
func (p CallPattern) Matches(c *PastCall) (matches, known bool) {
	if p.outcome == "" && c.Outcome == "denied" || p.outcome != "" && p.outcome != c.Outcome || p.tool != "" && !matchGlob(p.tool, c.Tool) {
		return false, true
	}
	if p.effect != "" && c.Effect != "" && p.effect != c.Effect {
		return false, true
	}
	effectKnown := p.effect == "" || c.Effect != ""
	if p.resource == "" {
		return effectKnown, effectKnown
	}
	known = c.Resources != nil
	for _, text := range c.Resources {
		r, err := ParseResource(text)
		known = known && err == nil
		if err == nil && p.pattern.Matches(r) {
			return effectKnown, effectKnown
		}
	}
	return false, known
}

// CallWindow is the part of a session that an answer is about. The zero
// CallWindow is the whole session.
type CallWindow struct {
	span time.Duration
	last int
}

// maxLastCalls bounds the number of calls in a window.
const maxLastCalls = 10_000

// ParseCallWindow parses a window: a duration such as 90s, 10m or 24h; a number
// of calls such as 20, which are the last ones of the session, of any tool and
// outcome; or an empty text for the whole session.
func ParseCallWindow(text string) (w CallWindow, err error) {
	if text == "" {
		return w, nil
	}
	if w.last, err = strconv.Atoi(text); err == nil {
		if w.last < 1 || w.last > maxLastCalls {
			return CallWindow{}, fmt.Errorf("the number of calls of a window must be from 1 to %d", maxLastCalls)
		}
		return w, nil
	}
	if w.span, err = time.ParseDuration(text); err != nil || w.span <= 0 {
		return CallWindow{}, errors.New("a window must be a duration such as 10m or 24h, or a number of calls")
	}
	return w, nil
}

// Span returns the duration of the window. It is 0 if the window has none.
func (w CallWindow) Span() time.Duration { return w.span }

// Calls returns how many calls the window has. It is 0 if it has no such bound.
func (w CallWindow) Calls() int { return w.last }
