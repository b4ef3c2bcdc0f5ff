package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// maxData bounds the data of a session, in bytes of canonical JSON.
const maxData = 64 << 10

// Data sets facts about the task of a session: a map, a struct or a
// json.RawMessage that becomes a JSON object, of at most 64 KiB in canonical
// form. Rules read it as input.session.data. The host program vouches for it,
// and it never changes: it is in the record of the session, so a session that
// another process resumes has the same data. A session with a delegated grant
// has the data of its parent, and cannot set its own. The record holds the
// data as it is, whatever the policy redacts, so it must not contain secrets.
func Data(facts any) SessionOption {
	return func(c *sessionConfig) { c.data = append(c.data, facts) }
}

// dataText returns the data of a session in canonical form.
func dataText(facts any) (json.RawMessage, error) {
	text, err := json.Marshal(facts)
	if raw, is := facts.(json.RawMessage); is { // its numbers and names are checked as they are written
		text, err = raw, nil
	}
	if err != nil {
		return nil, err
	}
	v, err := canon.Parse(text, canon.DefaultLimits())
	if err != nil {
		return nil, err
	}
	if text, err = canon.Marshal(v); err != nil {
		return nil, err
	}
	switch {
	case !bytes.HasPrefix(text, []byte("{")):
		return nil, errors.New("must be a JSON object, so that rules can name its parts")
	case len(text) > maxData:
		return nil, fmt.Errorf("%d bytes in canonical form; must be at most %d", len(text), maxData)
	}
	return text, nil
}

// sessionData returns the data of a new session, in canonical form. from is the
// session that delegates, or nil.
func (c *sessionConfig) sessionData(from *Session) (json.RawMessage, error) {
	switch {
	case len(c.data) == 0 && from == nil:
		return nil, nil
	case len(c.data) == 0:
		return from.data, nil
	case from != nil:
		return nil, fmt.Errorf("data of the session: a delegated session has the data of its parent; leave the option out: %w", tool.ErrInvalid)
	case len(c.data) > 1:
		return nil, fmt.Errorf("data of the session: the option is set %d times; set it once: %w", len(c.data), tool.ErrInvalid)
	}
	text, err := dataText(c.data[0])
	if err != nil {
		return nil, fmt.Errorf("data of the session: %w: %w", err, tool.ErrInvalid)
	}
	return text, nil
}

// Data returns the data of the session in canonical form, or nil if it has
// none.
func (s *Session) Data() json.RawMessage { return slices.Clone(s.data) }
