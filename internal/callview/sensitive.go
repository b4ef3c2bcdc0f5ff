package callview

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// WithoutSensitive returns a copy of a call that hides the named arguments. It
// leaves out the inverses of changes, which can contain the same values.
func WithoutSensitive(c *revert.Call, names []string) *revert.Call {
	out := *c
	if c.Started != nil {
		s := *c.Started
		s.Input, s.InputDigest = hide(s.Input, s.InputDigest, names)
		out.Started = &s
	}
	if c.Held != nil {
		h := *c.Held
		h.Input, h.InputDigest = hide(h.Input, h.InputDigest, names)
		out.Held = &h
	}
	if c.Denied != nil {
		d := *c.Denied
		d.Input, d.InputDigest = hide(d.Input, d.InputDigest, names)
		out.Denied = &d
	}
	if c.Asked != nil {
		a := *c.Asked
		a.Input, a.InputDigest = hide(a.Input, a.InputDigest, names)
		out.Asked = &a
	}
	out.Changes, out.Verified = changesOnly(c.Changes), append([]record.Verified{}, c.Verified...)
	out.Reversal, out.Redo = WithoutInverses(c.Reversal), WithoutInverses(c.Redo)
	return &out
}

// hide hides the named arguments of an input. It drops the digest of an input
// in which it hid a value, because the digest of a short value tells the value.
func hide(input json.RawMessage, digest string, names []string) (json.RawMessage, string) {
	hidden := HideArguments(input, names)
	if !bytes.Equal(hidden, input) {
		digest = ""
	}
	return hidden, digest
}

// WithoutInverses returns a copy of a revert without the inverses of its changes,
// which can contain sensitive values. It returns nil for nil.
func WithoutInverses(u *revert.Reversal) *revert.Reversal {
	if u == nil {
		return nil
	}
	out := *u
	out.Changes = changesOnly(u.Changes)
	out.Reverting.Steps = slices.Clone(u.Reverting.Steps)
	for i := range out.Reverting.Steps {
		out.Reverting.Steps[i].Change.Inverse, out.Reverting.Steps[i].Change.Blobs = nil, nil
	}
	return &out
}

func changesOnly(all []effect.Change) []effect.Change {
	out := append([]effect.Change{}, all...)
	for i := range out {
		out[i].Inverse, out[i].Blobs = nil, nil
	}
	return out
}
