// Walks the course with Go's net/http: go run course.go URL. Each step prints one line.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func ask(step, method, path string, body io.Reader, counts bool) {
	request, err := http.NewRequest(method, os.Args[1]+path, body)
	if err != nil {
		panic(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		panic(err)
	}
	if counts {
		fmt.Println(step, response.StatusCode, len(text))
	} else {
		fmt.Println(step, response.StatusCode, string(text))
	}
}

// A reader that hides its length.
type stream struct{ io.Reader }

func main() {
	ask("get", "GET", "/items?x=1", nil, false)
	ask("post", "POST", "/count", strings.NewReader("hello=world"), false)
	ask("chunked", "POST", "/count", stream{bytes.NewReader(bytes.Repeat([]byte("c"), 200000))}, false)
	ask("big", "GET", "/big", nil, true)
	ask("head", "HEAD", "/items?x=1", nil, false)
	ask("delete", "DELETE", "/items?x=1", nil, false)
}
