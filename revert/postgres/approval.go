package postgres

import (
	"context"
	"encoding/json"
)

// SetApprovalRules announces which approvals count for the calls of this node,
// so that an approver on another node applies the same rules.
func (n *Node) SetApprovalRules(ctx context.Context, rules json.RawMessage) error {
	return n.again(ctx, func() error {
		_, err := n.pool.Exec(ctx, "UPDATE nodes SET approval = $2::json WHERE id = $1", n.NodeID(), string(rules))
		return err
	})
}

// ApprovalRules returns the rules that a node announced, or nil if it announced
// none or is unknown.
func (j *Journal) ApprovalRules(ctx context.Context, node string) (rules json.RawMessage, err error) {
	err = j.again(ctx, func() error {
		var text *string
		err := j.pool.QueryRow(ctx, "SELECT approval::text FROM nodes WHERE id = $1", node).Scan(&text)
		if noRows(err) {
			return nil
		}
		if err == nil && text != nil {
			rules = json.RawMessage(*text)
		}
		return err
	})
	return rules, err
}
