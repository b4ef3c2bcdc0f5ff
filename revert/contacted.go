package revert

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/revert/record"
)

// ContactedHosts returns the hosts that programs of the call reached through
// its proxy. No revert takes back what they sent there.
func (c *Call) ContactedHosts() (all []record.ContactedHost) {
	for _, key := range slices.Sorted(maps.Keys(c.Notes)) {
		var n record.ContactedHosts
		if strings.HasSuffix(key, n.Key()) && json.Unmarshal(c.Notes[key], &n) == nil {
			all = append(all, n.Hosts...)
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
