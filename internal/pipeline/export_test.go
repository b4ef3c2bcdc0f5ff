package pipeline

import "github.com/remit-dev/remit/perm"

// OperationKey makes the key of a call reachable for its golden vectors.
var OperationKey = operationKey

// TimeToVerify returns how long a Verify of a call with such changes may take.
var TimeToVerify = timeToVerify

// ChangedResource describes the resource of a change for a policy.
var ChangedResource = changedResource

// DecisionText returns the canonical form of a decision.
func (l *Pipeline) DecisionText(d perm.DecisionRecord) ([]byte, error) { return l.decisionText(d) }

// EncodeResult returns the canonical form of a result.
var EncodeResult = encodeResult
