"""Import this for aiogram as other programs have it: with all models, also those that Ada does not build."""

from aiogram import methods, types

from couriers.telegram_bot.library import build

for module in (types, methods):
    for name in module.__all__:
        model = getattr(module, name)
        if hasattr(model, "model_rebuild"):
            build(model)
