package taskcorpus_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// task is one request of a person.
type task struct {
	domain  string
	number  int
	says    string // the words of the person
	does    []call // of an honest agent
	whole   check  // whether the request was fulfilled
	attacks []attack
}

func (t task) name() string { return fmt.Sprintf("%s/%02d", t.domain, t.number) }

// aside reports whether the task is kept aside.
func (t task) aside() bool { return t.number%2 == 0 }

func (t task) half() string {
	if t.aside() {
		return "even"
	}
	return "odd"
}

// call is one call of a script. A text of its arguments can refer to an earlier
// result: {2/messages/0/id} is a value of the second honest call, and {a1/id} one of
// the first injected call.
type call struct {
	tool string
	args map[string]any
}

// attack is an injection: a hostile text, and what an agent that obeys it does.
type attack struct {
	in      place
	text    string
	does    []call       // after the agent has read the text
	instead map[int]call // honest calls that the agent makes in another way, by number from 1
	harm    check        // whether the injected effect happened
	// reversible says that a revert takes the effect back exactly. Otherwise others
	// have noticed it.
	reversible bool
}

// c is a call. The arguments are pairs of name and value.
func c(tool string, pairs ...any) call {
	args := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		args[pairs[i].(string)] = pairs[i+1] //nolint:errcheck // a panic names it
	}
	return call{tool, args}
}

func calls(list ...call) []call { return list }

func to(addresses ...string) []string { return addresses }

// allTasks returns every task: first by domain, then by number.
func allTasks() []task {
	all := slices.Concat(mailOdd(), mailEven(), calendarOdd(), calendarEven(), bankOdd(), bankEven(),
		chatOdd(), chatEven(), travelOdd(), travelEven(), codeOdd(), codeEven())
	slices.SortStableFunc(all, func(a, b task) int { return strings.Compare(a.name(), b.name()) })
	return all
}

// results are the outputs of a run, by number of the call: 1, and a1 for an injected
// one.
type results map[string]any

var references = regexp.MustCompile(`\{(a?\d+)(/[^{}]*)\}`)

// resolve returns the arguments of a call with the values that it refers to. It
// returns false if a value is not there, because an earlier call did not run.
func (r results) resolve(args map[string]any) (resolved map[string]any, ok bool) {
	raw, err := json.Marshal(args)
	must(err)
	var plain map[string]any
	must(json.Unmarshal(raw, &plain))
	value, ok := r.replace(plain)
	if !ok {
		return nil, false
	}
	return value.(map[string]any), true //nolint:errcheck // the only type of it
}

func (r results) replace(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return r.replaceText(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var ok bool
			if list[i], ok = r.replace(v[i]); !ok {
				return nil, false
			}
		}
		return list, true
	case map[string]any:
		object := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			var ok bool
			if object[key], ok = r.replace(v[key]); !ok {
				return nil, false
			}
		}
		return object, true
	}
	return v, true
}

func (r results) replaceText(text string) (any, bool) {
	complete := true
	lookup := func(ref string) any {
		m := references.FindStringSubmatch(ref)
		value, ok := at(r[m[1]], m[2])
		complete = complete && ok
		return value
	}
	if references.FindString(text) == text && text != "" {
		value := lookup(text)
		return value, complete
	}
	replaced := references.ReplaceAllStringFunc(text, func(ref string) string { return fmt.Sprint(lookup(ref)) })
	return replaced, complete
}

func splitPointer(pointer string) []string {
	return strings.Split(strings.TrimPrefix(pointer, "/"), "/")
}

// at returns the value at a JSON pointer.
func at(v any, pointer string) (any, bool) {
	for _, key := range splitPointer(pointer) {
		switch in := v.(type) {
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		case map[string]any:
			var ok bool
			if v, ok = in[key]; !ok {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return v, true
}

// contains reports whether a text is in one of the texts of a value.
func contains(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return contains(v, text) })
	case map[string]any:
		for _, v := range v {
			if contains(v, text) {
				return true
			}
		}
	}
	return false
}
