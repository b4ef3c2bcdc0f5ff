package perm

import (
	"errors"
	"fmt"
	"slices"
)

// The scopes of Remember.
const (
	RememberSession = "session" // an approval covers later calls of its session with no other keys
	RememberNever   = "never"   // an approval covers its call only, whatever the approver wants
)

// maxRememberKeys bounds the keys of a decision, and maxRememberKey the bytes of
// each.
const (
	maxRememberKeys = 32
	maxRememberKey  = 512
)

// Remember is what a policy says about the later calls that an approval also
// covers. The zero Remember leaves that to the approver.
type Remember struct {
	Scope string   `json:"scope"`          // session or never
	Keys  []string `json:"keys,omitempty"` // with scope session: what the call does, one text for each part; sorted
}

// Check returns an error if the value is invalid.
func (r Remember) Check() error {
	switch {
	case r.Scope != RememberSession && r.Scope != RememberNever:
		return fmt.Errorf("remember of an ask is %s or %s", RememberSession, RememberNever)
	case r.Scope == RememberNever && len(r.Keys) > 0:
		return errors.New("an ask that is never remembered has no keys")
	case r.Scope == RememberSession && len(r.Keys) == 0:
		return errors.New("an ask that is remembered needs keys")
	case len(r.Keys) > maxRememberKeys:
		return fmt.Errorf("an ask has at most %d keys", maxRememberKeys)
	}
	for _, key := range r.Keys {
		if key == "" || len(key) > maxRememberKey {
			return fmt.Errorf("a key of an ask has 1 to %d bytes", maxRememberKey)
		}
	}
	return nil
}

// Covers reports whether an approval that is remembered with r covers a call
// that asks with other.
func (r Remember) Covers(other Remember) bool {
	return r.Scope == RememberSession && other.Scope == RememberSession && len(other.Keys) > 0 &&
		!slices.ContainsFunc(other.Keys, func(key string) bool { return !slices.Contains(r.Keys, key) })
}

// Join returns what holds for one approval of two asks. Both must be remembered,
// or the approval is not.
func (r Remember) Join(other Remember) Remember {
	if r.Scope != other.Scope {
		return Remember{Scope: RememberNever}
	}
	keys := slices.Concat(r.Keys, other.Keys)
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) > maxRememberKeys {
		return Remember{Scope: RememberNever}
	}
	return Remember{r.Scope, keys}
}

func (r Remember) clone() Remember { return Remember{r.Scope, slices.Clone(r.Keys)} }
