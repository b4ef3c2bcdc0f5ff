package approval

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/journal"
)

// RulesFor returns the settings that count for a call, or for the commit of a
// transaction: those of the node whose session asks. The state folder of the
// approver says nothing about the calls of another node. A node that announced
// no settings has the strictest ones.
func RulesFor(ctx context.Context, p *state.Workspace, j journal.Journal, id string) (Settings, error) {
	if !p.IsShared() {
		return ReadSettings(p.StateDir)
	}
	session, err := state.SessionOfID(ctx, j, id)
	if err != nil {
		return Settings{}, err
	}
	of := ""
	if session != nil {
		of = session.State.Node
	}
	if n, ok := j.(state.Node); ok && n.NodeID() == of {
		return ReadSettings(p.StateDir)
	}
	from, ok := j.(interface {
		ApprovalRules(ctx context.Context, node string) (json.RawMessage, error)
	})
	if !ok {
		return Settings{node: of}, nil
	}
	text, err := from.ApprovalRules(ctx, of)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{}
	if text != nil {
		if err := s.decode(text); err != nil {
			return Settings{}, &cli.Problem{
				Code: cli.ExitUsage, What: "who may approve cannot be read for calls of node " + of, Why: err.Error(),
				Fix: "approve on that node; list the nodes: " + p.Hint("nodes"),
			}
		}
	}
	s.node = of
	return s, nil
}

// decode reads the JSON form of settings, and rejects invalid ones.
func (s *Settings) decode(text []byte) error {
	if err := canon.Decode(text, s); err != nil {
		return err
	}
	if s.Passphrase != nil && !s.Passphrase.Valid() {
		return errInvalidPassphrase
	}
	return nil
}

// Announce tells the other nodes of a shared journal the settings of this one.
func Announce(ctx context.Context, p *state.Workspace, j journal.Journal) error {
	n, ok := j.(state.Node)
	if !ok {
		return nil
	}
	s, err := ReadSettings(p.StateDir)
	if err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := n.SetApprovalRules(ctx, text); err != nil {
		return fmt.Errorf("announce who may approve: %w", err)
	}
	return nil
}
