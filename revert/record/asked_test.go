package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert/record"
)

// TestEarlier checks that an approval request names its number within its call,
// and the earlier approvals.
func TestEarlier(t *testing.T) {
	require.Empty(t, (&record.Asked{}).Earlier())
	read := func(name string) record.Access {
		return record.Access{Action: "read", Resource: "file://workspace/" + name}
	}
	by := func(who string, accesses ...record.Access) record.Approved {
		return record.Approved{Approval: record.Approval{By: who, Digest: "sha256:" + who}, Access: accesses}
	}
	asked := &record.Asked{Approvals: []record.Approved{by("ann", read("a")), by("bob", read("a"), read("b"), read("c"), read("d"), read("e")), by("cy")}}
	require.Equal(t, "this is question 4 of the call; approved before, and still counted: read file://workspace/a (by ann); "+
		"read file://workspace/a, read file://workspace/b, read file://workspace/c, 2 more (by bob); (by cy)", asked.Earlier())
}
