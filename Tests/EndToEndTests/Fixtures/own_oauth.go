// A program with the OAuth code of Go's library: own_oauth KIND COUNT, KIND `client` or `jwt`. Asks idp.test for a token, GETs
// https://api.test/x with it COUNT times, and prints each status.
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/oauth2/jwt"
)

func client(kind string) *http.Client {
	if kind == "client" {
		config := clientcredentials.Config{
			ClientID: "legacy", ClientSecret: "dummy-secret-0123", TokenURL: "https://idp.test/token",
		}
		return config.Client(context.Background())
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	config := jwt.Config{
		Email: "job@project.iam.test", PrivateKey: text, Scopes: []string{"read"}, TokenURL: "https://idp.test/token",
	}
	return config.Client(context.Background())
}

func main() {
	client := client(os.Args[1])
	count, _ := strconv.Atoi(os.Args[2])
	for index := 0; index < count; index++ {
		answer, err := client.Get("https://api.test/x")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		answer.Body.Close()
		fmt.Println(answer.StatusCode)
	}
}
