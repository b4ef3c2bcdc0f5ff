package agent

import (
	"encoding/json"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/record"
)

// recordedCall is what the records of a decision have in common.
type recordedCall struct {
	tool     record.ToolRef
	input    json.RawMessage
	digest   string
	class    string
	declared bool
	access   []record.Access
	decision perm.DecisionRecord
	stage    string
	asked    bool
	sums     map[string]json.Number
	facts    *record.Facts
}

func decidedCall(rec record.Record) (recordedCall, error) {
	var c recordedCall
	var decision json.RawMessage
	switch b := rec.Body.(type) {
	case *record.Held:
		c, decision = startedCall(&b.Started)
	case *record.Started:
		c, decision = startedCall(b)
	case *record.Asked:
		c = recordedCall{tool: b.Tool, input: b.Input, digest: b.InputDigest, class: string(b.Class), declared: b.Declared, access: b.Access, asked: true, facts: b.Facts, sums: b.Order.Sums()}
		decision = b.Decision
	case *record.Denied:
		c = recordedCall{tool: b.Tool, input: b.Input, digest: b.InputDigest, class: string(b.Class), declared: b.Declared, access: append([]record.Access{b.Access}, b.Others...), stage: b.Stage, facts: b.Facts, sums: b.Order.Sums()}
		decision = b.Decision
	}
	if len(decision) > 0 {
		if err := canon.Decode(decision, &c.decision); err != nil {
			return c, err
		}
	}
	return c, nil
}

func startedCall(b *record.Started) (recordedCall, json.RawMessage) {
	return recordedCall{
		tool: b.Tool, input: b.Input, digest: b.InputDigest, class: string(b.Class), declared: b.Declared, access: b.Access,
		asked: b.Approval != nil, sums: b.Counts, facts: b.Facts,
	}, b.Decision
}
