package web

// CheckAddress is the check of the dialler.
var CheckAddress = checkAddress

// CheckHeader checks one header of a request.
var CheckHeader = checkHeader
