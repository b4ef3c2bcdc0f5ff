// Package killtest has no code but tests: they kill real processes with SIGKILL while these
// work, recover and take back, and have system calls of theirs fail, on real files, a
// real database, a local service and programs in the sandbox. What a machine loses that
// goes down, internal/proof/crash tries on a simulated disk: a killed process loses nothing
// that it has handed to the system.
package killtest
