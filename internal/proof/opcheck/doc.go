// Package opcheck checks the history of a run of several agents. It reports
//
//   - lost content of an outside actor,
//   - an operation with two effects, or with an unannounced one,
//   - a cycle of ended transactions,
//   - a reverted effect that is present, or a done effect that is absent,
//   - a write by a former owner,
//   - a journal that did not recover.
//
// It shares no code with remit. The test records each action and each report,
// in the order in which they happened, as [Event]s; [Check] returns the
// violated promises. Contents are compared by their text, so every write of a
// run has its own.
package opcheck
