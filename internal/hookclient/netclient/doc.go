// Package netclient is the client of the resident process for systems without
// the one of package hookclient, which starts before other packages. There, it
// calls that one.
package netclient
