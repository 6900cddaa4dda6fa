// GETs a URL and prints the answer.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	answer, fault := http.Get(os.Args[1])
	if fault != nil {
		log.Fatal(fault)
	}
	io.Copy(os.Stdout, answer.Body)
}
