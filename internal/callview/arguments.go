package callview

import "encoding/json"

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
