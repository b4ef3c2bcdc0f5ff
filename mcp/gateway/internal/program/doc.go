// Package program runs servers by command on this machine: as the user who runs
// remit, or in the sandbox. A guard ends the servers of a killed gateway.
package program
