package revert

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert/effect"
)

// ContactedHosts returns the hosts that programs of the call reached through
// its proxy. No revert takes back what they sent there.
func (c *Call) ContactedHosts() []effect.Host { return noted[effect.Host](c, effect.HostsNote) }

// DeniedHosts returns the hosts that the proxy refused to programs of the call.
func (c *Call) DeniedHosts() []effect.DeniedHost {
	return noted[effect.DeniedHost](c, effect.DeniedHostsNote)
}

// noted returns the lists under a key, of all parts of a call.
func noted[T any](c *Call, name string) (all []T) {
	for _, key := range slices.Sorted(maps.Keys(c.Notes)) {
		var some []T
		if strings.HasSuffix(key, name) && json.Unmarshal(c.Notes[key], &some) == nil {
			all = append(all, some...)
		}
	}
	return all
}

// contacted returns the origins that calls of the transaction reached: all, or
// those with the ids.
func (t *Txn) contacted(ids []string) (origins []string) {
	if t == nil {
		return nil
	}
	for _, c := range t.Calls {
		if len(ids) > 0 && !slices.Contains(ids, c.Ref.Call) {
			continue
		}
		for _, h := range c.ContactedHosts() {
			origins = append(origins, h.Origin)
		}
	}
	slices.Sort(origins)
	return slices.Compact(origins)
}

// withHosts adds to a report the hosts that the reverted calls reached.
func (r Report) withHosts(t *Txn, how Options) Report {
	ids := slices.Clone(how.Calls)
	for _, item := range r.Items {
		if len(ids) > 0 && item.Txn == "" {
			ids = append(ids, item.Call)
		}
	}
	r.Contacted = t.contacted(ids)
	return r
}
