package callview

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// Arguments formats arguments in at most 60 characters and hides the named
// ones. It leaves out the client and the client's tool of a coding agent's use.
func Arguments(args []byte, hidden []string) string {
	v, err := canon.Parse(args, canon.DefaultLimits())
	if err != nil {
		return ""
	}
	if v.Kind() != canon.Object {
		return Clip(oneLine(v.Text()), 60)
	}
	var words []string
	_, ofClient := v.Get("client")
	_, ofTool := v.Get("tool")
	for name, member := range v.Members() {
		if ofClient && ofTool && (name == "client" || name == "tool") {
			continue
		}
		words = append(words, oneLine(name)+"="+argWord(member, slices.Contains(hidden, name)))
	}
	if len(words) > 1 {
		for i := range words {
			words[i] = Clip(words[i], 40)
		}
	}
	slices.SortStableFunc(words, pathsFirst)
	return Clip(strings.Join(words, " "), 60)
}

func argWord(v canon.Value, hidden bool) string {
	switch {
	case hidden:
		return "(hidden)"
	case v.Kind() == canon.String:
		return oneLine(v.Text())
	default:
		return oneLine(string(v.Canonical()))
	}
}

// pathsFirst orders the path before other arguments.
func pathsFirst(a, b string) int {
	first := func(s string) int {
		if strings.HasPrefix(s, "path=") {
			return 0
		}
		return 1
	}
	return first(a) - first(b)
}

// HideArguments replaces the values of the named arguments.
func HideArguments(input json.RawMessage, names []string) json.RawMessage {
	var members map[string]json.RawMessage
	if len(names) == 0 || json.Unmarshal(input, &members) != nil {
		return input
	}
	for _, n := range names {
		if _, there := members[n]; there {
			members[n] = json.RawMessage(`"(hidden)"`)
		}
	}
	out, err := json.Marshal(members)
	if err != nil {
		return json.RawMessage(`"(hidden)"`)
	}
	return out
}
