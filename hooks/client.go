package hooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Client is a kind of coding agent: how it writes its events and reads answers.
// The zero Client is no client; Find returns them.
type Client struct {
	Name  string // as in the command line, such as claude-code
	Title string // for people, such as Claude Code
	// Asks reports whether the client asks the person if a hook answers so.
	Asks bool
	// FailsOpen reports whether the client runs a tool whose hook failed or
	// ran out of time.
	FailsOpen bool
	// Serial reports whether an agent of the client uses one tool at a time, so
	// that a use has ended when the next one begins.
	Serial bool

	parse func(raw json.RawMessage) (Event, error)
	reply func(e Event, a Answer) Reply
	tools map[string]toolKind // by the client's own names
}

// Clients returns all clients, sorted by name.
func Clients() []Client {
	all := []Client{claudeCode(), codex(), cursor(), geminiCLI(), opencode()}
	slices.SortFunc(all, func(a, b Client) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the client of a name.
func Find(name string) (Client, bool) {
	all := Clients()
	i := slices.IndexFunc(all, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

// Parse reads one event. It returns an error if the text is no event of the
// client.
func (c Client) Parse(raw []byte) (Event, error) {
	e, err := c.parse(raw)
	if err != nil {
		return e, fmt.Errorf("hooks: an event of %s: %w", c.Name, err)
	}
	if e.Session == "" {
		return e, fmt.Errorf("hooks: an event of %s: it names no session", c.Name)
	}
	return e, nil
}

// Reply writes an answer as the client reads it.
func (c Client) Reply(e Event, a Answer) Reply { return c.reply(e, a) }

// Refuse is the reply to an event that could not be handled: it blocks a tool,
// and otherwise only tells the reason.
func (c Client) Refuse(e Event, why string) Reply {
	if e.Moment == BeforeTool || e.Moment == "" {
		return Reply{Stderr: "remit: " + why + "\n", Exit: 2}
	}
	return Reply{Stderr: "remit: " + why + "\n"}
}

// encode writes a reply that is JSON on standard output.
func encode(v any) Reply {
	raw, err := json.Marshal(v)
	if err != nil { // not reached: the values are texts and raw JSON
		return Reply{Stderr: "remit: " + err.Error() + "\n", Exit: 2}
	}
	return Reply{Stdout: string(raw) + "\n"}
}

// object is a JSON object that is built in place.
type object map[string]any
