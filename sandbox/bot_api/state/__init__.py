"""The state that the bot, its chats and the people in them share between calls; the parameters and the errors of a
call.
"""
