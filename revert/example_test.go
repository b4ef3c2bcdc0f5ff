package revert_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// The outcome of a transaction follows from its records alone. Any process with
// the journal finds it, also after the owner was killed.
func Example() {
	ctx := context.Background()
	open := journal.SharedMemory()
	mine := open()
	rec := revert.NewRecorder(mine, host.Real(), "s_1").In("t_1")
	for _, w := range []revert.Write{
		{
			Take:    journal.OwnerChange{To: journal.Ownership{Txn: "t_1", Owner: mine.Owner()}},
			Records: []revert.CallRecord{{Body: &record.Begun{Owner: mine.Owner()}}},
		},
		{Records: []revert.CallRecord{{Call: "c_1", Body: &record.Invalid{Tool: record.ToolRef{Name: "file_write"}, Why: "path: missing"}}}},
		{Records: []revert.CallRecord{{Body: &record.Committed{}}}, End: true, Durable: true},
	} {
		if err := rec.Write(ctx, w); err != nil {
			panic(err)
		}
	}

	txn, err := revert.Load(ctx, open(), "t_1")
	if err != nil {
		panic(err)
	}
	fmt.Println(txn.State(), txn.Calls[0].Phase, txn.Calls[0].Invalid.Why)
	// Output: committed invalid path: missing
}
