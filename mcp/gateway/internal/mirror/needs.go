package mirror

import (
	"encoding/json"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/mcp/gateway/internal/binding"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// needs adds accesses. Those that name arguments are computed for each call.
func needs(s *tool.Spec, all []perm.ResourceAccess, roots map[string]string) error {
	var named []binding.Binding
	for _, a := range all {
		b, err := binding.New(a, roots)
		if err != nil {
			return err
		}
		if len(b.Params) > 0 {
			named = append(named, b)
		}
		s.Needs = append(s.Needs, b.Bound)
	}
	if len(named) == 0 {
		return nil
	}
	before := s.AccessFor
	s.AccessFor = func(in json.RawMessage) (all []perm.ResourceAccess, err error) {
		if before != nil {
			if all, err = before(in); err != nil {
				return nil, err
			}
		}
		v, err := canon.Parse(in, canon.DefaultLimits())
		if err != nil {
			return nil, err
		}
		for _, b := range named {
			some, err := b.Fill(v)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		return all, nil
	}
	return nil
}
