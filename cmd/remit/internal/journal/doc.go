// Package journal has the verbs that read the journal and change what it
// records: log, show, diff, feedback, revert, redo, recover, prune, erase and
// fsck.
package journal
