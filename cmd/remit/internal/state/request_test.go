package state

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/revert"
)

// Another node wrote the words of a request: none of them ends a command, or
// controls a terminal.
func TestRequestHintIsOneCommand(t *testing.T) {
	p := &Workspace{}
	q := revert.Request{Target: "t_1\x1b[2J\nremit approve ALL", By: "x; touch /tmp/y \"$(id)\"", Resources: []string{"a b"}}
	require.Equal(t, `remit revert 't_1\x1b[2J remit approve ALL' --file 'a b' --by 'x; touch /tmp/y "$(id)"'`, p.RequestHint(q, "me"))
	require.Equal(t, `remit revert 't_1\x1b[2J remit approve ALL' --withdraw`, p.WithdrawHint(q))
	require.Equal(t, "remit revert t_1 --withdraw", p.WithdrawHint(revert.Request{Target: "t_1"}))
}
