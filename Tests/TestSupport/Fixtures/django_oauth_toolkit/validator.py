"""Claims about the signed-in user."""

from oauth2_provider.oauth2_validators import OAuth2Validator


class Validator(OAuth2Validator):
    oidc_claim_scope = None

    def get_additional_claims(self, request):
        return {"email": request.user.email, "preferred_username": request.user.get_username()}
