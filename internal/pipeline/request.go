package pipeline

import (
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Request is a request of a caller, with what the runtime knows about it.
type Request struct {
	tool.Request
	Refusal *BatchRefusal // refusal of the batch that contains the call; nil: none

	resumed *revert.Call // the pending call that continues
}
