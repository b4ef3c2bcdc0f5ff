// Package dbosagent runs the calls of an agent as steps of a DBOS workflow, which another process continues after a crash.
//
// A workflow is an ordinary function of github.com/dbos-inc/dbos-transact-golang, registered and started with that library.
// In it, [Run] makes a transaction of remit:
//
//	func tidy(ctx dbos.Context, in Task) (string, error) {
//		return dbosagent.Run(ctx, engine, perm.Principal{ID: "tidier"}, func(tx *dbosagent.Txn) (string, error) {
//			plan, err := dbos.RunAsStep(ctx, askModel(in))
//			...
//			out, err := tx.Invoke("file_write", plan.Args)
//			...
//		})
//	}
//
// What holds:
//
//   - Each call is a step. DBOS keeps its ID, and the journal of remit its content, so erasing and redacting a call reach all of
//     it. (What the workflow gives to DBOS itself, such as answers of a model, is DBOS's to delete.)
//   - A call runs once. Its ID is the workflow and the step, so a step that is repeated after a crash finds its call on the
//     journal. A call that the crash ended before it had an effect runs again, with the next attempt in its ID.
//   - If the function fails or panics, or the workflow is cancelled, the transaction is reverted: the compensation of a saga,
//     without code for each step. If the process dies before that, the next [Engine.Recover] does it.
//   - A call or a commit that the policy asks about waits on the journal, for as long as the answer takes, also without any
//     process. The answer comes by remit approve, the console or agent.Runtime.Answer, and needs nothing of DBOS.
//
// # Order of writes
//
// A call is on the journal before it has an effect, and its end is durable before DBOS records the step. So a step that DBOS
// knows is always on the journal. The reverse can be false after a crash, and the step then finds the call. The two records do not
// share a PostgreSQL transaction: the beginning of a call must be durable long before the step ends, and once calls have IDs of
// their steps, a common end adds nothing. The journal can be SQLite, PostgreSQL, or of any other kind.
//
// # Several processes
//
// DBOS gives a workflow that is continued to any process of its application and version. Each of them must have the journal, by
// revert/postgres on several machines, and the folders. Files belong to one node: a workflow that works on them needs a name of
// its own for each node (Config.AppName). A process that misses the journal or a folder ends the workflow with an error.
//
// # Versions
//
// DBOS continues a workflow only in a process with the same application version: set Config.ApplicationVersion and
// Config.ExecutorID, because the default is a digest of the program. Change a workflow that is under way with dbos.Patch.
// A transaction keeps the grant of its session, as far as the tools of the new program still need it.
package dbosagent
