package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/tool"
)

// ErrLocked says that an administrator has locked a setting.
var ErrLocked = errors.New("the setting is locked")

// Set returns the user's file with one setting of a tool set, or without it where value
// is null. What is locked is refused with ErrLocked and by whom, and what the setting
// does not take with the reason; the file is then as it was.
func (from Sources) Set(t tool.Tool, name string, value json.RawMessage) (File, error) {
	refuse := func(err error) (File, error) {
		return from.User, fmt.Errorf("tool %q: setting %q: %w", t.Name(), name, err)
	}
	if t.IsZero() || !slices.ContainsFunc(t.Spec().Settings, func(p tool.Param) bool { return p.Name == name }) {
		return refuse(errors.New("there is no such setting"))
	}
	if locked := from.Locked.of(t).get(name); locked != nil {
		return refuse(fmt.Errorf("%w by %s (%s)", ErrLocked, from.Locked.by, locked.at))
	}
	v, err := canon.Parse(value, canon.DefaultLimits())
	if err != nil {
		return refuse(err)
	}
	into := t.Name()
	if _, exact := from.User.tools[t.QualifiedName()]; exact {
		into = t.QualifiedName()
	}
	if v.Kind() == canon.Null {
		return from.User.with(into, name, nil), nil
	}
	if err := internals.CheckSetting(t, name, value); err != nil {
		return refuse(err)
	}
	return from.User.with(into, name, &v), nil
}
