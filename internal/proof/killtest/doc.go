// Package killtest contains only tests. They kill real processes with SIGKILL
// while these work, recover and revert, and make their system calls fail, on
// real files, a real database, a local service and programs in the sandbox.
// internal/proof/crash tests the loss of data in a power failure on a simulated
// disk: a killed process loses nothing that the system has received.
package killtest
