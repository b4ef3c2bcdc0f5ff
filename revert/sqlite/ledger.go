package sqlite

import (
	"slices"

	"github.com/remit-dev/remit/revert/journal"
)

// A ledger has what batches did to transactions and claims, on top of what the
// tables txns and claims say. The tables are as of the last indexed batch, and
// the ledger has the batches after it. The zero ledger is empty.
type ledger struct {
	txns   map[string]*ledgerTxn
	order  []string          // transactions in the order in which the ledger met them
	claims map[string]string // transaction that holds a resource
	full   int               // see compact
}

// ledgerTxn is a transaction that a batch changed.
type ledgerTxn struct {
	owner  string
	begun  bool // by a batch of this ledger, so the tables do not have it
	ended  bool
	claims []string
}

// add applies the operations of one batch.
func (l *ledger) add(o batchOps) {
	if to := o.take.To; to.Txn != "" {
		t := l.txn(to.Txn)
		t.owner = to.Owner
		t.begun = t.begun || o.take.From == ""
	}
	if o.end != "" {
		t := l.txn(o.end)
		t.ended = true
		for _, resource := range t.claims {
			delete(l.claims, resource)
		}
		t.claims = nil
	}
}

// claim adds a claim, unless its transaction has ended: that releases it.
func (l *ledger) claim(txn, resource string) {
	t := l.txn(txn)
	//mutant:check
	if t.ended || l.claims[resource] != "" {
		return
	}
	l.claims[resource] = txn
	t.claims = append(t.claims, resource)
}

// txn returns a transaction. An owner that the ledger did not learn is in the
// table.
func (l *ledger) txn(id string) *ledgerTxn {
	if l.txns == nil {
		l.txns, l.claims = map[string]*ledgerTxn{}, map[string]string{}
	}
	t := l.txns[id]
	if t == nil {
		t = &ledgerTxn{}
		l.txns[id] = t
		l.order = append(l.order, id)
	}
	return t
}

// unfinished applies the ledger to the open transactions of the table.
func (l *ledger) unfinished(table []journal.Ownership) []journal.Ownership {
	all := slices.DeleteFunc(table, func(o journal.Ownership) bool { return l.txns[o.Txn] != nil && l.txns[o.Txn].ended })
	for i, o := range all {
		if t := l.txns[o.Txn]; t != nil && t.owner != "" {
			all[i].Owner = t.owner
		}
	}
	for _, id := range l.order {
		if t := l.txns[id]; t.begun && !t.ended {
			all = append(all, journal.Ownership{Txn: id, Owner: t.owner})
		}
	}
	return all
}

// compact forgets the transactions that ended, for a caller that only wants the
// open ones. It does so when there are twice as many as the last time.
func (l *ledger) compact() {
	if len(l.order) < max(l.full, indexBatches) {
		return
	}
	l.order = slices.DeleteFunc(l.order, func(id string) bool {
		ended := l.txns[id].ended
		if ended {
			delete(l.txns, id)
		}
		return ended
	})
	l.full = 2 * len(l.order)
}
