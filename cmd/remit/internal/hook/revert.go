package hook

import (
	"context"
	"encoding/json"
	"errors"
	"net"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/hooks"
	"github.com/remit-dev/remit/revert"
)

// revert reverts what an agent did, for a command that it started. The process
// at the other end says for which agent, not the request.
func (s *service) revert(ctx context.Context, conn *net.UnixConn, pid int, fields []string) error {
	var r cli.AgentRevert
	if err := json.Unmarshal([]byte(fields[0]), &r); err != nil {
		return err
	}
	var out agentguard.Reverted
	all, err := s.watch.sessionsAbove(pid)
	if err == nil {
		out.Report, err = revertOf(ctx, all, r)
	}
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		out.Error = err.Error()
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return reply(conn, hooks.Reply{Stdout: string(text)})
}

// revertOf reverts or redoes a transaction or a call of one of the sessions, if
// the policy allows it.
func revertOf(ctx context.Context, all []*agent.Session, r cli.AgentRevert) (rep revert.Report, err error) {
	err = errors.New("no session of a running agent is above the command")
	for _, s := range all {
		if _, err = s.FindTxn(ctx, r.ID); err != nil {
			continue
		}
		if r.Redo {
			return s.Redo(ctx, r.ID)
		}
		return s.Revert(ctx, r.ID, revert.Options{Resources: r.Resources, NoMerge: r.NoMerge, Permit: s.MayRevert, PermitMerge: s.MayMerge})
	}
	return rep, err
}
